// The version of the release: daemon, client and simulator are released together.

/// The version in `vehicled --version`, `vehiclectl version` and GetInfo.
public let version = "0.2.0"
