#!/bin/bash
#: name = "writes a job file"
#: variety = "basic"

cat > other.sh <<-'EOF'
#!/bin/bash
#: name = "other"
#: variety = "basic"
echo other
EOF
mask=$(( 1 << BITS ))
cat <<<"not a here-document"
