# Writes OUTPUT, a C++ source with the texts of FILES as string literals: the
# function FUNCTION that HEADER declares, a table of TYPE {name, text}.
set(text "// Made from files by embed_files.cmake.\n#include \"${HEADER}\"\n\nnamespace pd {\n\n")
string(APPEND text "const std::vector<${TYPE}>& ${FUNCTION}() {\n  static const auto* const kFiles = new std::vector<${TYPE}>{\n")
foreach(file ${FILES})
  file(READ ${file} content)
  get_filename_component(name ${file} NAME)
  string(APPEND text "      {\"${name}\", R\"file(${content})file\"},\n")
endforeach()
string(APPEND text "  };\n  return *kFiles;\n}\n\n}  // namespace pd\n")
file(WRITE ${OUTPUT} "${text}")
