# Writes a text as a literal of C++: cmake -DPTX=F -P Literal.cmake writes F.inc.
file(READ ${PTX} text)
file(WRITE ${PTX}.inc "R\"ptx(${text})ptx\"\n")
