// How to connect to the broker, as a plain value.

struct BrokerOptions: Equatable, Sendable {
  /// The part of the URL before "://".
  enum Scheme: String, Sendable {
    case mqtt, mqtts

    var port: Int { self == .mqtt ? 1883 : 8883 }
  }

  var scheme = Scheme.mqtt
  var host = "localhost"
  var port = Scheme.mqtt.port
  var clientID = "vehicled"
  var user: String?
  var password: String?
  /// The files of certificate authorities (nil: those of the system), and of the client's certificate and key.
  var authorities: String?
  var certificate: String?
  var key: String?
  /// The time without traffic after which the connection is checked, in seconds.
  var keepAlive = 60

  /// The last-will message, which the broker publishes if the connection is lost.
  var will: OutgoingMessage?
  /// The topic filters to subscribe to.
  var filters: [String] = []

  /// The URL for messages, without the password.
  var description: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return "\(scheme.rawValue)://\(name)\(port == scheme.port ? "" : ":\(port)")"
  }
}
