"""What a run did, as a page that people look at, and what held it back, in words."""
