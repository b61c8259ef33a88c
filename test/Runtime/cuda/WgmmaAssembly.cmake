# cmake -DPTXAS=... -DPTX=... -P WgmmaAssembly.cmake
# Assembles the kernels of --wgmma-attention. Fails where ptxas makes products wait
# for one another (its notes C7510 to C7519), or keeps registers in memory: few, and
# outside of loops, are allowed, as one kernel has where a mask is partial.
set(allowed 32)
execute_process(COMMAND ${PTXAS} -v -arch=sm_90a -o ${PTX}.cubin ${PTX}
  RESULT_VARIABLE failed ERROR_VARIABLE said OUTPUT_VARIABLE said)
if(failed OR said MATCHES "C75[0-9][0-9]")
  message(FATAL_ERROR "${said}")
endif()
string(REGEX MATCHALL "[0-9]+ bytes spill stores" all "${said}")
list(LENGTH all found)
if(NOT found EQUAL 8)
  message(FATAL_ERROR "ptxas told of ${found} kernels, expected 8:\n${said}")
endif()
foreach(one IN LISTS all)
  string(REGEX MATCH "^[0-9]+" bytes "${one}")
  if(bytes GREATER allowed)
    message(FATAL_ERROR "${one}, expected at most ${allowed}:\n${said}")
  endif()
endforeach()
