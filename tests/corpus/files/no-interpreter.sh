#: name = "a"
#: variety = "basic"

# buildomat: no interpreter line
