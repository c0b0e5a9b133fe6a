// How clients arrange properties: by group, and within a group by importance.

/// The group that a property is shown in; the order of the cases is the order of display.
public enum PropertyGroup: String, Sendable, CaseIterable {
  case drive, battery, engine, temperatures, tyres, body, cells
  case position, weather, health, display, general
  case settings, emissions, diagnostics, identity, adapter, statistics
}

/// The importance of a property. The raw value is used on the control socket.
public enum PropertyRank: Int, Sendable, CaseIterable {
  /// Shown in one-line summaries of a device.
  case headline = 1
  case main = 2
  /// Shown after the main ones.
  case detail = 3
  /// Shown only on request: counters and the like.
  case statistic = 4
}
