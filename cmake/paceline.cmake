# Flags and helpers shared by every folder.

# Exactness needs these: no contraction of a*b+c behind our back, no reassociation, denormals on.
add_compile_options(-ffp-contract=off -fno-fast-math -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes
                    -Wmissing-prototypes -Wvla -fno-strict-overflow)
add_compile_definitions(_GNU_SOURCE)
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")

if(PACELINE_SANITIZE)
  string(REPLACE "," ";" _san "${PACELINE_SANITIZE}")
  foreach(s ${_san})
    add_compile_options(-fsanitize=${s})
    add_link_options(-fsanitize=${s})
  endforeach()
  # Under its sanitizers GCC warns of things that are not there (unset variables, loop pragmas without a loop left); the
  # release build keeps every warning an error.
  add_compile_options(-fno-omit-frame-pointer -fno-sanitize-recover=all -Wno-error)
endif()

if(PACELINE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link) # coverage counters in the libraries; fuzz/ links the driver itself
endif()

# pl_library(NAME SOURCES... [LINKS ...]): static library pl_NAME from this folder.
function(pl_library name)
  cmake_parse_arguments(A "" "" "SOURCES;LINKS" ${ARGN})
  add_library(pl_${name} STATIC ${A_SOURCES})
  target_include_directories(pl_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(pl_${name} PUBLIC ${A_LINKS})
endfunction()

# pl_test(NAME LINKS...): cmocka program tests/<folder>/test_NAME.c, run by ctest from the repository root.
function(pl_test name)
  add_executable(test_${name} test_${name}.c)
  target_link_libraries(test_${name} PRIVATE ${ARGN} PkgConfig::CMOCKA)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  add_test(NAME ${name} COMMAND test_${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  set_tests_properties(${name} PROPERTIES LABELS ${folder} TIMEOUT 300)
endfunction()
