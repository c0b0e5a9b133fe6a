// The faults of a simulated weather service.
// Source: Open-Meteo (error format, null fields); common failures of HTTP.

import Protocols

public typealias ForecastFault = Fault<ForecastFaultKind>

/// The faults of a weather service. A fault with a start time affects all later clients.
public enum ForecastFaultKind: String, FaultKind {
  case error, limit, down, html, null, unit, redirect, slow, truncated, huge, garbage

  public static let countedItems = "replies"

  public var defaults: (trigger: FaultTrigger, duration: Nanoseconds?) { (.every(1), takesDuration ? 20 * .second : nil) }

  public var takesDuration: Bool { self == .slow }

  /// The description of the fault.
  public var help: String {
    switch self {
    case .error: "reply 400, with a reason that quotes the request"
    case .limit: "reply 429, too many requests"
    case .down: "reply 503, with a web page"
    case .html: "reply 200, with the login page of a captive portal"
    case .null: "set every value to null"
    case .unit: "always send the temperature in °F"
    case .redirect: "reply 302, to the same host"
    case .slow: "delay the reply by MS"
    case .truncated: "close the connection after half of the reply"
    case .huge: "send a reply of 2 MiB"
    case .garbage: "send a reply that is not HTTP"
    }
  }
}
