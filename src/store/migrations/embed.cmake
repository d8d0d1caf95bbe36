# cmake -DOUT=FILE -DIN=FILE;... -P embed.cmake: the migrations as a C++ source, by version.
set(rows "")
foreach(path IN LISTS IN)
  get_filename_component(stem ${path} NAME_WE)
  string(REGEX REPLACE "^0+" "" version ${stem})
  file(READ ${path} sql)
  string(APPEND rows "    {${version}, R\"migration(${sql})migration\"},\n")
endforeach()
file(WRITE ${OUT} "#include \"store/schema.h\"

namespace tp::store {

const std::vector<Migration>& ProductMigrations() {
  static const std::vector<Migration> migrations = {
${rows}  };
  return migrations;
}

}  // namespace tp::store
")
