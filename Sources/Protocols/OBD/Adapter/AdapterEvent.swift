// The events that the adapter session returns to its owner.

/// An event of the adapter session. Some events require a call by the owner.
enum AdapterEvent {
  case none
  /// The setup is complete.
  case ready
  /// The reply to a command of the owner is complete.
  case replied
  /// A command of the owner failed; the owner calls `count` next.
  case failed(AdapterFailure)
  /// The owner must perform this action before the session can continue.
  case needs(AdapterAction)
  /// The adapter has been retargeted. `took` is nil after a setup, when the duration is not representative.
  case retargeted(took: Nanoseconds?)
  /// The adapter cannot address this ECU, for this reason.
  case rejected(Target?, String)
  /// The adapter has reported the detected protocol, or nil if its reply names no known protocol.
  case identified(OBDProtocol?)
  /// The voltage in V, or nil if the reply is unreadable or the adapter does not support the query.
  case measured(Double?, isProbe: Bool)
  /// The adapter did not reply to the voltage query; the owner calls `count` next.
  case measurementFailed(AdapterFailure)
  /// The adapter does not support low power mode.
  case staysAwake
}

/// The reason why a command had no usable reply.
enum AdapterFailure {
  case timeout
  /// More bytes than a reply can have.
  case overflow
  case unusable(String, resynchronising: Bool)
}
