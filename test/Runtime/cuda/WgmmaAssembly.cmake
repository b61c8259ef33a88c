# cmake -DPTXAS=... -DPTX=... -P WgmmaAssembly.cmake
# Assembles the kernels of --wgmma-attention. Fails where ptxas makes products wait
# for one another (its notes C7510 to C7519), or keeps registers in memory.
execute_process(COMMAND ${PTXAS} -v -arch=sm_90a -o ${PTX}.cubin ${PTX}
  RESULT_VARIABLE failed ERROR_VARIABLE said OUTPUT_VARIABLE said)
string(REGEX MATCHALL "[0-9]+ bytes spill stores" all "${said}")
string(REGEX MATCHALL "[1-9][0-9]* bytes spill stores" spilled "${said}")
list(LENGTH all found)
if(failed OR spilled OR said MATCHES "C75[0-9][0-9]" OR NOT found EQUAL 8)
  message(FATAL_ERROR "expected 8 kernels without a spill or a note:\n${said}")
endif()
