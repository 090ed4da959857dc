"""The running worker: its process, its tasks, its row in the database, and what `kernelgate doctor` says."""
