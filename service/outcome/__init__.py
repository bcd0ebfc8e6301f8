"""What tables cost their readers, what jobs gain, and whether objectives are kept."""
