// Messages to and from the broker, as plain values.

/// A message to publish at QoS 1.
struct OutgoingMessage: Equatable, Sendable {
  var topic: String
  var payload: [UInt8]
  /// Whether the broker stores it for later subscribers.
  var isRetained: Bool
  /// The time in seconds after which the broker discards it (MQTT 5); nil for never.
  var expiry: UInt32?
  /// Whether a retained one keeps its meaning, so that it is stored on the disk until the broker has it. Others are always stored.
  var isDurable = false
  /// Correlation data of a response to a request (MQTT 5).
  var correlation: [UInt8]?

  init(_ topic: String, _ payload: some Sequence<UInt8>, isRetained: Bool = false, expiry: UInt32? = nil, correlation: [UInt8]? = nil) {
    (self.topic, self.payload, self.isRetained) = (topic, Array(payload), isRetained)
    (self.expiry, self.correlation) = (expiry, correlation)
  }

  /// A retained text.
  static func state(_ topic: String, _ text: String, expiry: UInt32? = nil, isDurable: Bool = false) -> OutgoingMessage {
    var message = OutgoingMessage(topic, text.utf8, isRetained: true, expiry: expiry)
    message.isDurable = isDurable
    return message
  }
}

/// A received message.
struct IncomingMessage: Equatable {
  var topic: String
  var payload: [UInt8]
  /// Whether the broker had stored it before the subscription.
  var isRetained: Bool
  /// The topic for a response, and the data that identifies the request (MQTT 5).
  var responseTopic: String?
  var correlation: [UInt8]?
}
