# find_package(Hearth): the targets Hearth::plugin_api, Hearth::chat and Hearth::testing,
# hearth_add_plugin() and hearth_add_plugin_test(). Only tests need SQLite and the date library.
include(CMakeFindDependencyMacro)
find_dependency(nlohmann_json)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/HearthTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/HearthPlugin.cmake)
