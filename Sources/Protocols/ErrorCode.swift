// The codes of errors that a device or the daemon reports to clients (`DeviceError.code` of io.vehicled). Codes are added, never changed;
// io.vehicled(7) describes each of them.

/// The machine-readable reason why a command was rejected or failed.
public enum ErrorCode: String, Sendable, CaseIterable {
  // Any device
  case busy
  case driving
  case expired
  case inputClosed = "input-closed"
  case `internal`
  case leaseLost = "lease-lost"
  case noAnswer = "no-answer"
  case noData = "no-data"
  case noGuardian = "no-guardian"
  case noLease = "no-lease"
  case noLink = "no-link"
  case noMotion = "no-motion"
  case notConfigured = "not-configured"
  case notStored = "not-stored"
  case notSupported = "not-supported"
  case readOnly = "read-only"
  case rejected
  case removed
  case replaced
  case tooSlow = "too-slow"
  // Scanning
  case bluetooth
  // Kind obd
  case adapterRefused = "adapter-refused"
  case adapterRestarted = "adapter-restarted"
  case adapterSilent = "adapter-silent"
  case badReply = "bad-reply"
  case moving
  case noCAN = "no-can"
  case noECU = "no-ecu"
  case notCleared = "not-cleared"
  case notPolling = "not-polling"
  case outcomeUnknown = "outcome-unknown"
  case rawNotAllowed = "raw-not-allowed"
  // Kind rc-car
  case noButtons = "no-buttons"
  case noHost = "no-host"
  case noModes = "no-modes"
  case noPicture = "no-picture"
  case noTilt = "no-tilt"
  case notAllowed = "not-allowed"
  case notConfirmed = "not-confirmed"
  case stopped
  // Kind longboard
  case noDuty = "no-duty"
  // Kind mirror
  case collectionOff = "collection-off"
  case needsUsername = "needs-username"
  // Kind toy
  case cannotListen = "cannot-listen"
  case deleted
  case needsLogin = "needs-login"
  case noAccount = "no-account"
  case noToy = "no-toy"
  case noVote = "no-vote"
  case notPlayed = "not-played"
  case votesPending = "votes-pending"
  case wrongPassword = "wrong-password"
  // Kind weather
  case rateLimited = "rate-limited"
}
