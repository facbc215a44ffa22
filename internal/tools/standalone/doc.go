// Package standalone has a test and nothing else: the nested modules of the
// repository build for those who have no checkout of it.
package standalone
