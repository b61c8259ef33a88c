# MLIR 22 from its shared libraries, and how our libraries use it.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
add_definitions(${LLVM_DEFINITIONS})

# LLVM has no run-time type information, so neither do the classes derived from its own.
meshwork_precompile(Mlir OPTIONS -fno-rtti)

# A compiler library: meshwork_add_library(NAME sources... DEPENDS tablegen-targets... LIBS libraries...
# [PRECOMPILED headers]). All that stands above the dialects takes their classes precompiled: they
# cost twice as much to parse as the rest of a pass.
function(meshwork_add_library name)
  cmake_parse_arguments(arg "" "PRECOMPILED" "DEPENDS;LIBS" ${ARGN})
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  if(NOT arg_PRECOMPILED)
    set(arg_PRECOMPILED Dialects)
  endif()
  meshwork_use_precompiled(${arg_PRECOMPILED} ${name})
  target_link_libraries(${name} PUBLIC ${arg_LIBS} MLIR LLVM)
  if(arg_DEPENDS)
    add_dependencies(${name} ${arg_DEPENDS})
  endif()
endfunction()

# Reference pages from the .td files: `ninja meshwork-doc` leaves them in docs/ of
# the build folder. meshwork_doc(PAGE FILE.td tablegen-options...)
add_custom_target(meshwork-doc)
function(meshwork_doc page definitions)
  set(LLVM_TARGET_DEFINITIONS ${definitions})
  tablegen(MLIR ${page}.md ${ARGN})
  set(made ${PROJECT_BINARY_DIR}/docs/${page}.md)
  add_custom_command(OUTPUT ${made} COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_BINARY_DIR}/${page}.md ${made}
    DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/${page}.md VERBATIM)
  add_custom_target(meshwork-doc-${page} DEPENDS ${made})
  add_dependencies(meshwork-doc meshwork-doc-${page})
endfunction()

# A module is millions of small blocks: with jemalloc a large model compiles in 0.7 of the time that the C library's
# allocator takes. Sanitizers bring their own.
function(meshwork_use_jemalloc target)
  if(MESHWORK_SANITIZE)
    return()
  endif()
  find_library(jemalloc jemalloc)
  if(NOT jemalloc)
    message(FATAL_ERROR "jemalloc is not found: `sudo apt-get install libjemalloc-dev`, or let `./dev build` do it")
  endif()
  target_link_options(${target} PRIVATE LINKER:--push-state,--no-as-needed ${jemalloc} LINKER:--pop-state)
endfunction()
