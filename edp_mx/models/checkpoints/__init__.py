"""Pre-trained BERTs in Hugging Face's layout: read, checked, and written."""
