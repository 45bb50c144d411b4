"""What PySpark has and this has not, by name; each says where to get the real one."""

from distlab.errors import NotHere

__all__ = ["of"]

_WHERE = (
    "Real Spark has it, and runs here, too: see distlab.engines.spark, which takes the "
    "same functions."
)
_NAMES = {
    "SparkContext": {
        "addArchive", "addFile", "addJobTag", "addPyFile", "applicationId",
        "binaryFiles", "binaryRecords", "cancelAllJobs", "cancelJobGroup",
        "cancelJobsWithTag", "clearJobTags", "dump_profiles", "getConf", "getJobTags",
        "getLocalProperty", "getOrCreate", "hadoopFile", "hadoopRDD", "listArchives",
        "listFiles", "newAPIHadoopFile", "newAPIHadoopRDD", "removeJobTag",
        "resources", "sequenceFile", "setInterruptOnCancel", "setJobDescription",
        "setJobGroup", "setLocalProperty", "setLogLevel", "setSystemProperty",
        "show_profiles", "sparkUser", "startTime", "statusTracker", "uiWebUrl",
        "version", "PACKAGE_EXTENSIONS",
    },
    "RDD": {
        "barrier", "cleanShuffleDependencies", "collectWithJobGroup", "countApprox",
        "countApproxDistinct", "getResourceProfile", "meanApprox",
        "saveAsHadoopDataset", "saveAsHadoopFile", "saveAsNewAPIHadoopDataset",
        "saveAsNewAPIHadoopFile", "saveAsSequenceFile", "sumApprox", "toDF",
        "withResources",
    },
}  # fmt: skip


def of(kind: str, name: str, here: str) -> AttributeError:
    """Return the exception for an attribute that an object of `here` has not."""
    if name in _NAMES[kind]:
        return NotHere(f"{here}.{name} is left out here. {_WHERE}")
    return AttributeError(f"{here!r} object has no attribute {name!r}")
