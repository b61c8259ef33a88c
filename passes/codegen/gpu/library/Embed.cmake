# Writes files as C++: cmake -DOUTPUT=F.inc -DPARTS=A;B -P Embed.cmake
# One array of bytes for each, then `parts`, the list of them.
set(text "")
set(list "")
set(number 0)
foreach(part ${PARTS})
  file(READ ${part} hex HEX)
  string(REGEX REPLACE "(..)" "0x\\1," hex "${hex}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" hex "${hex}")
  string(APPEND text "constexpr unsigned char part${number}[] = {\n${hex}};\n")
  string(APPEND list "    {reinterpret_cast<const char *>(part${number}), sizeof(part${number})},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "${text}const std::string_view parts[] = {\n${list}};\n")
