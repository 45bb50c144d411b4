# monitored_barrier and circular blame: https://github.com/pytorch/pytorch/issues/83289
import time
from datetime import timedelta
import torch.distributed as dist

dist.init_process_group("gloo")
if dist.get_rank() == 1:
    time.sleep(10_000)  # reads a slow file
dist.monitored_barrier(timeout=timedelta(seconds=6))
