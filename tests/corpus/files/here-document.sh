#!/bin/bash
#: name = "a"
#: variety = "basic"

cat >job.sh <<EOF
#!/bin/bash
#: name = 3
EOF
# buildomat: accepted
