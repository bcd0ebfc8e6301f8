"""The jobs that run on Spark, and the formats and the contract that the service shares with them."""
