# Makes a header of text files, so that a program carries them in itself:
#   cmake -DOUT=HEADER -DSTYLE=FILE -DSCRIPTS=FILE,FILE,... -P embed.cmake
# kStudyPageStyle is the text of STYLE, kStudyPageScripts are those of SCRIPTS, in that order.
function(literal file result)
  file(READ "${file}" text)
  string(LENGTH "${text}" length)
  # Compilers need not take more, and readers should not have to.
  if(length GREATER 30000)
    message(FATAL_ERROR "${file}: ${length} characters; split it")
  endif()
  if(text MATCHES "</[sS]|<!--|\\)embedded")
    message(FATAL_ERROR "${file}: holds what would end its element or its literal")
  endif()
  set(${result} "R\"embedded(${text})embedded\"" PARENT_SCOPE)
endfunction()

literal("${STYLE}" style)
set(all "#pragma once\n#include <string_view>\ninline constexpr std::string_view kStudyPageStyle =\n")
string(APPEND all "${style};\ninline constexpr std::string_view kStudyPageScripts[] = {\n")
string(REPLACE "," ";" files "${SCRIPTS}")
foreach(file IN LISTS files)
  literal("${file}" script)
  string(APPEND all "${script},\n")
endforeach()
file(WRITE "${OUT}" "${all}};\n")
