"""GPT-2: its settings, its network, and its checkpoints in Hugging Face's layout."""
