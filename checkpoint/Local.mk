# checkpoint/
