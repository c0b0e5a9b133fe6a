// Reports a failure of the test that runs a host.

#if canImport(Testing)
  import Testing

  func fail(_ reason: String) { Issue.record("\(reason)") }
#else
  // A build with the static standard library has no Testing, and runs no tests.
  func fail(_ reason: String) { fatalError(reason) }
#endif
