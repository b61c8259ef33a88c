# Joins the files of page/ to C++: cmake -DFILES=page.html;page.css;a.js -DOUTPUT=O.cpp -P Page.cmake. In page.html
# @STYLE@ stands for the style, @SCRIPT@ for the scripts one after the other, and @DATA@ for what C++ puts there.
list(POP_FRONT FILES html css)
file(READ ${html} text)
file(READ ${css} style)
set(script "")
foreach(file ${FILES})
  file(READ ${file} one)
  string(APPEND script "${one}\n")
endforeach()
string(REPLACE "@STYLE@" "${style}" text "${text}")
string(REPLACE "@SCRIPT@" "${script}" text "${text}")
string(FIND "${text}" ")page\"" close)
if(NOT close EQUAL -1)
  message(FATAL_ERROR "a file of the page holds )page\", which ends a text in C++")
endif()
string(REPLACE "@DATA@" ")page\", R\"page(" text "${text}")
file(WRITE ${OUTPUT} "// Made from lib/Report/page.
namespace meshwork::report {
extern const char *const pageParts[];
const char *const pageParts[] = {R\"page(${text})page\"};
} // namespace meshwork::report
")
