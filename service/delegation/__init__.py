"""The plans of table services that writers delegate by Hudi's own protocol."""
