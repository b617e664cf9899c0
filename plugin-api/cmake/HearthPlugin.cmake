# hearth_add_plugin() and hearth_add_plugin_test(): the flags that make a library safe to load
# beside others, to replace while the server runs, and to unload.
#
#   hearth_add_plugin(chat-room chat_room.cpp)            -> <build>/plugins/chat-room.so
#   hearth_add_plugin(chat-room chat_room.cpp OUTPUT_DIRECTORY /srv/hearth/plugins)
#   hearth_add_plugin_test(chat_room_tests chat_room_test.cpp)
#
# C and C++ sources. Needs clang 19, or g++ 12 within the subset that plugin-api/README.md names.
#
# HEARTH_PRECOMPILE (ON): the headers of Hearth are compiled once for each target, not for each
# source or change. With OFF, or the target property DISABLE_PRECOMPILE_HEADERS, each source
# compiles them. In both cases the sources include <hearth/agent.hpp>.
option(HEARTH_PRECOMPILE "Precompile the headers of Hearth for plugins and their tests" ON)
# A server loads a plugin with sanitizers only if it has the same ones; a test can have its own.
set(HEARTH_SANITIZE_TESTS "" CACHE STRING "Comma-separated sanitizers of unit tests of plugins: address,undefined | thread")

set(HEARTH_PLUGIN_MAP ${CMAKE_CURRENT_LIST_DIR}/plugin.map CACHE INTERNAL "The version script of plugins")

# Everything that the server loads must have the server's sanitizers.
function(hearth_sanitize target sanitizers)
  if(sanitizers)
    target_compile_options(${target} PRIVATE -fsanitize=${sanitizers} -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${sanitizers})
    if(sanitizers MATCHES undefined)
      target_compile_options(${target} PRIVATE -fno-sanitize-recover=all -fno-sanitize=vptr,null,alignment)
    endif()
  endif()
endfunction()

function(hearth_precompile target)
  if(HEARTH_PRECOMPILE)
    foreach(header IN LISTS ARGN)
      target_precompile_headers(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:<${header}$<ANGLE-R>>")
    endforeach()
  endif()
endfunction()

# At the end of a configuration. A library whose target was renamed would be served beside the new
# one, with the same class.
function(hearth_remove_former_plugins)
  get_property(plugins GLOBAL PROPERTY HEARTH_PLUGINS)
  set(former ${HEARTH_FORMER_PLUGINS})
  list(REMOVE_ITEM former "" ${plugins})
  foreach(name IN LISTS former)
    file(REMOVE ${CMAKE_BINARY_DIR}/plugins/${name}.so)
  endforeach()
  set(HEARTH_FORMER_PLUGINS ${plugins} CACHE INTERNAL "The plugins of the last configuration")
endfunction()

function(hearth_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "OUTPUT_DIRECTORY" "")
  if(NOT arg_OUTPUT_DIRECTORY)
    set(arg_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
    set_property(GLOBAL APPEND PROPERTY HEARTH_PLUGINS ${name})
  endif()

  add_library(${name} MODULE ${arg_UNPARSED_ARGUMENTS})
  if(NOT TARGET hearth_dev)
    add_custom_target(hearth_dev)  # what `hearth dev` builds: the libraries, without their tests
    cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL hearth_remove_former_plugins)
  endif()
  add_dependencies(hearth_dev ${name})
  target_link_libraries(${name} PRIVATE Hearth::plugin_api)
  if(NOT HEARTH_PLUGIN_HEADERS)
    hearth_precompile(${name} hearth/agent.hpp)
  elseif("${arg_UNPARSED_ARGUMENTS}" MATCHES "[.]cpp")  # in Hearth's own build
    target_precompile_headers(${name} REUSE_FROM ${HEARTH_PLUGIN_HEADERS})
  endif()
  set_target_properties(${name} PROPERTIES
    PREFIX "" SUFFIX ".so"
    LIBRARY_OUTPUT_DIRECTORY ${arg_OUTPUT_DIRECTORY}
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS ${HEARTH_PLUGIN_MAP})

  # Unique symbols would make the loader keep the library, and share its variables between
  # generations.
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>)

  # One exported symbol; nothing unresolved, lazily bound, writable or executable without need.
  target_link_options(${name} PRIVATE
    LINKER:--version-script=${HEARTH_PLUGIN_MAP} LINKER:-z,now LINKER:-z,relro LINKER:-z,noexecstack
    LINKER:--build-id=sha1 LINKER:--gc-sections)
  hearth_sanitize(${name} "${HEARTH_SANITIZE}")
  if(NOT "${HEARTH_SANITIZE} ${CMAKE_CXX_FLAGS} ${CMAKE_C_FLAGS}" MATCHES "sanitize|address|undefined|thread")
    target_link_options(${name} PRIVATE LINKER:-z,defs)  # a sanitizer's own symbols come from the server
  endif()
endfunction()

# A GoogleTest executable for agent classes on the mock host (hearth/testing/host.hpp). It includes
# or compiles the plugin's source: HEARTH_PLUGIN expands to nothing in it.
function(hearth_add_plugin_test name)
  find_package(GTest REQUIRED)
  find_package(SQLite3 REQUIRED)
  find_package(date REQUIRED)
  include(GoogleTest)
  add_executable(${name} ${ARGN})
  target_compile_definitions(${name} PRIVATE HEARTH_NO_ENTRY)
  # plugin_api first: the class under test uses the JSON code of its library, not the host's.
  target_link_libraries(${name} PRIVATE Hearth::plugin_api Hearth::testing GTest::gtest_main ${CMAKE_DL_LIBS})
  hearth_precompile(${name} hearth/agent.hpp hearth/testing/host.hpp gtest/gtest.h)
  if(HEARTH_SANITIZE_TESTS)
    hearth_sanitize(${name} "${HEARTH_SANITIZE_TESTS}")
  else()
    hearth_sanitize(${name} "${HEARTH_SANITIZE}")
  endif()
  gtest_discover_tests(${name} TEST_PREFIX ${name}/ DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "unit" TIMEOUT 60)
endfunction()
