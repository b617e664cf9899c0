# Files that become part of a program.
#
#   hearth_embed_files(OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/template_files.cpp
#                      DIRECTORY ${PROJECT_SOURCE_DIR}/plugin-api/template
#                      HEADER "cli/new_project.hpp" TYPE hearth::cli::TemplateFile
#                      FUNCTION hearth::cli::template_files)
#
# writes a C++ source that defines `std::span<const TYPE> FUNCTION()`, which HEADER declares. TYPE
# is an aggregate of two std::string_view: the path inside DIRECTORY, and the content. Sorted by
# path. Written when CMake configures, and again when one of the files changes.

function(hearth_embed_files)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUTPUT;DIRECTORY;HEADER;TYPE;FUNCTION" "")
  file(GLOB_RECURSE files LIST_DIRECTORIES false CONFIGURE_DEPENDS RELATIVE ${arg_DIRECTORY} ${arg_DIRECTORY}/*)
  list(SORT files)
  set(entries "")
  foreach(path IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${arg_DIRECTORY}/${path}")
    file(READ "${arg_DIRECTORY}/${path}" content)
    string(APPEND entries "    {R\"hearth(${path})hearth\",\n     R\"hearth(${content})hearth\"},\n")
  endforeach()
  set(text "// Made by EmbedFiles.cmake.\n#include \"${arg_HEADER}\"\n\n#include <span>\n\nnamespace {\n\n")
  string(APPEND text "constexpr ${arg_TYPE} kFiles[] = {\n${entries}};\n\n}  // namespace\n\n")
  string(APPEND text "std::span<const ${arg_TYPE}> ${arg_FUNCTION}() {\n  return kFiles;\n}\n")

  set(before "")
  if(EXISTS ${arg_OUTPUT})
    file(READ ${arg_OUTPUT} before)
  endif()
  if(NOT before STREQUAL text)
    file(WRITE ${arg_OUTPUT} "${text}")
  endif()
endfunction()
