# Included by every preset before the languages are enabled: a compiler cache
# and a fast linker where the machine has them. Neither is required.

find_program(TP_CCACHE ccache)
mark_as_advanced(TP_CCACHE)
if(TP_CCACHE)
  foreach(language C CXX)
    set(CMAKE_${language}_COMPILER_LAUNCHER "${TP_CCACHE}" CACHE STRING
        "Prefix of every ${language} compiler call")
  endforeach()
endif()

find_program(TP_MOLD mold)
mark_as_advanced(TP_MOLD)
if(TP_MOLD)
  foreach(kind EXE SHARED MODULE)
    set(CMAKE_${kind}_LINKER_FLAGS_INIT "-fuse-ld=mold")
  endforeach()
endif()
