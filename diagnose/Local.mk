# diagnose/
