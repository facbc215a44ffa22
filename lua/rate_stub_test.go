package lua_test
var parting, joining, saving, charging, small, relimiting []scenario
