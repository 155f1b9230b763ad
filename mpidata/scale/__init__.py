"""Requests for more or fewer loaders or solver groups, while a job runs."""
