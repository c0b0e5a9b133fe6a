// What can be wrong with a simulated weather service.
// Facts: protocols of the mirror, §9 (the form of errors, fields that are null); the rest is what networks do to HTTP.

import Protocols

public typealias ForecastFault = Fault<ForecastFaultKind>

/// The faults of a weather service. One that strikes from a moment on goes on striking: each client is a new one to it.
public enum ForecastFaultKind: String, FaultKind {
  case error, limit, down, html, null, unit, redirect, slow, truncated, huge, garbage

  public static let countedItems = "answers"

  public var usual: (moment: FaultMoment, time: Nanoseconds?) { (.every(1), takesTime ? 20 * .second : nil) }

  public var takesTime: Bool { self == .slow }

  /// What it does.
  public var help: String {
    switch self {
    case .error: "400, with a reason that quotes what was asked"
    case .limit: "429: asked too often"
    case .down: "503, with a web page"
    case .html: "200, with a network's login page"
    case .null: "every value is null"
    case .unit: "the temperature comes in °F, whatever was asked"
    case .redirect: "302, to the same host"
    case .slow: "the answer takes MS"
    case .truncated: "half of the answer, then the connection is gone"
    case .huge: "an answer of 2 MiB"
    case .garbage: "what comes is no HTTP"
    }
  }
}
