# rules/
