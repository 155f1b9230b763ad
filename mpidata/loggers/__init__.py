"""Where the curves of a run go while it goes on: TensorBoard's files, or a class of the user's."""
