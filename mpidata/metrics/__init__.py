"""Figures over time: what a running job leaves in metrics.jsonl."""
