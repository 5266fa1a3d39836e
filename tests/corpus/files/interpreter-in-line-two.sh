# A licence
#!/bin/bash
#: name = "a"
#: variety = "basic"

echo
# buildomat: no interpreter line
