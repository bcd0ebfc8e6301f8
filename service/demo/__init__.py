"""`groundskeeper demo`: the main job on real Hudi, in one command, beside a writer that never stops."""
