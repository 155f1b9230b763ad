"""The texts of the parameter `mesh` of test_parameter_texts.py."""

MESHES = ("coarse", 'very "fine", 1=1 {é}')
