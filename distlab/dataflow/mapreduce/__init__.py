"""MapReduce jobs: map tasks, reduce tasks, their schedule, and simulated jobs."""
