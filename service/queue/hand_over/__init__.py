"""Hand-over: a job that replaces file groups waits until the Flink jobs that write its table have stopped."""
