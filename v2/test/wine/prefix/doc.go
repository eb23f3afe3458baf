// Package prefix runs Windows programs under Wine: in private prefixes, the directories in which Wine keeps a Windows of
// its own. Need installs Wine, New makes a prefix, Run and Start run programs in it, and TestMain calls CloseOnSignal.
//
// Wine is installed by tools/wine/install.sh, without root, into the directory that the environment variable
// CSI_PROXY_WINE names, or else into the user's cache. The first New makes a prefix there that is never used, and every
// New copies that one: Wine needs five seconds to make a prefix, and the first driver started in one that is quite new
// does not come up.
//
// A prefix sees nothing of this machine. It has no drive Z:, which would be the root directory, no links into the user's
// home, and none of the variables of the environment but PATH. Map shows it a directory.
//
// Programs write to files, not to pipes: services inherit what the program that happens to start them writes to, and a
// reader of a pipe waits until the last service ends.
//
// Close ends everything that runs in the prefix, services and Wine's server included, and removes it. If the test is
// killed instead, its programs run on until they are done, the server ends by itself a minute later, and the next New
// removes the directory.
package prefix
