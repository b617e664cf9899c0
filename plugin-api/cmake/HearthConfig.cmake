# find_package(Hearth): the target Hearth::plugin_api, hearth_add_plugin() and
# hearth_add_plugin_test().
include(CMakeFindDependencyMacro)
find_dependency(nlohmann_json)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/HearthTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/HearthPlugin.cmake)
