# Writes a file as text that C++ includes: cmake -DFROM=F -P Literal.cmake writes
# F.inc. PTX becomes a literal, machine code the numbers of its bytes.
if(FROM MATCHES "\\.cubin$")
  file(READ ${FROM} text HEX)
  string(REGEX REPLACE "(..)" "0x\\1," text "${text}")
  file(WRITE ${FROM}.inc "${text}\n")
else()
  file(READ ${FROM} text)
  file(WRITE ${FROM}.inc "R\"ptx(${text})ptx\"\n")
endif()
