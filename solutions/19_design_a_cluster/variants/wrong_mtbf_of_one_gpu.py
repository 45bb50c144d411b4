"""Takes the failures of one GPU for those of the job."""

POINTS = 7.0
HINT = "That interval fits one GPU"
REPLACE = {'3600 * job["gpu_mtbf_h"] / job["gpus"]': '3600 * job["gpu_mtbf_h"]'}
