# Libraries' headers, parsed once for all sources that are compiled with the same
# flags: parsing them for each source is most of a build.
#   meshwork_precompile(NAME OPTIONS flags... LIBS libraries...   what precompiled/NAME.h includes
#                       [ON ANOTHER]                              ...beyond precompiled/ANOTHER.h
#                       [DEPENDS targets...])                     who generate some of these
#   meshwork_use_precompiled(NAME targets...)
# What is precompiled is included first in each source of those targets, which are
# compiled with the same flags. A source includes what it uses all the same:
# -DMESHWORK_PRECOMPILED=OFF builds without.
option(MESHWORK_PRECOMPILED "Parse libraries' headers once" ON)

function(meshwork_precompile name)
  cmake_parse_arguments(arg "" "ON" "OPTIONS;LIBS;DEPENDS" ${ARGN})
  # Sources wait for a custom target, but not for another library's compilation.
  set(pch ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}Header.dir/cmake_pch.hxx.pch)
  if(NOT MESHWORK_PRECOMPILED OR NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    add_custom_target(${name}Precompiled)
    set_property(TARGET ${name}Precompiled PROPERTY MESHWORK_OPTIONS "${arg_OPTIONS}")
    return()
  endif()
  add_custom_target(${name}Precompiled DEPENDS ${pch})
  set_property(TARGET ${name}Precompiled PROPERTY MESHWORK_OPTIONS ${arg_OPTIONS} "SHELL:-include-pch ${pch}")
  set_property(TARGET ${name}Precompiled PROPERTY MESHWORK_HEADER ${pch})
  set(empty ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${empty} CONTENT "// Holds the flags of a precompiled header.\n")
  add_library(${name}Header OBJECT ${empty})
  target_compile_options(${name}Header PRIVATE ${arg_OPTIONS})
  target_precompile_headers(${name}Header PRIVATE <tools/cmake/precompiled/${name}.h>)
  # Not through ccache: the result names files of this folder.
  set_target_properties(${name}Header PROPERTIES
    CXX_COMPILER_LAUNCHER "sh;${PROJECT_SOURCE_DIR}/tools/cmake/precompile.sh")
  target_link_libraries(${name}Header PRIVATE ${arg_LIBS})
  if(arg_DEPENDS)
    add_dependencies(${name}Header ${arg_DEPENDS})
  endif()
  if(arg_ON)
    get_property(below TARGET ${arg_ON}Precompiled PROPERTY MESHWORK_HEADER)
    target_compile_options(${name}Header PRIVATE "SHELL:-include-pch ${below}")
    add_dependencies(${name}Header ${arg_ON}Precompiled)
  endif()
endfunction()

function(meshwork_use_precompiled name)
  get_property(options TARGET ${name}Precompiled PROPERTY MESHWORK_OPTIONS)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE ${options})
    add_dependencies(${target} ${name}Precompiled)
  endforeach()
endfunction()
