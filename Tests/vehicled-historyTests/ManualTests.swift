// vehicled-history(8) documents every key with its range and default, and every option.

import ArgumentParser
import ConfigurationTesting
import Foundation
import Protocols
import Testing

@testable import vehicled_history

@Suite struct HistoryManualTests {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized

  @Test func `the manual page documents every key and option`() throws {
    let page = try ManualPage(Self.root.appendingPathComponent("systemd/man/vehicled-history.8").path)
    #expect(page.problems(".Ss General keys", HistoryConfiguration.generalKeys) == [])
    #expect(page.problems(".Ss Section [history]", HistoryConfiguration.historyKeys) == [])
    #expect(page.problems(".Ss Section [alert.NAME]", HistoryConfiguration.alertKeys) == [])
    #expect(page.problems(options: HistoryCommand.helpMessage(includeHidden: false, columns: 100)) == [])
  }

  @Test func `the page and the documentation name the identifier of alerts`() throws {
    let page = try ManualPage(Self.root.appendingPathComponent("systemd/man/vehicled-history.8").path)
    #expect(page.lines.contains { $0.contains(AlertManager.messageID) })
    #expect(try String(contentsOf: Self.root.appendingPathComponent("docs/history.md"), encoding: .utf8).contains(AlertManager.messageID))
  }
}
