// Which servlet answers: no network, and a session only where one is asked for.
#include "sylar/http/servlet.h"

#include <gtest/gtest.h>

#include "sylar/http/http_session.h"

namespace sylar::http {
namespace {

class Named : public Servlet {
 public:
  using Servlet::Servlet;
  int32_t handle(HttpRequest::ptr, HttpResponse::ptr response, HttpSession::ptr) override {
    response->setBody(getName());
    return 7;
  }
};

Servlet::ptr named(const char* name) { return std::make_shared<Named>(name); }

class Counted final : public Named {
 public:
  Counted() : Named("Counted") { ++s_made; }
  static inline int s_made = 0;
};

std::string whoAnswers(const ServletDispatch& dispatch, const std::string& path) {
  return dispatch.getMatchedServlet(path)->getName();
}

TEST(ServletDispatch, ExactPathGoesBeforeGlobsAndTheseBeforeTheDefault) {
  ServletDispatch dispatch;
  dispatch.addGlobServlet("/a/*", named("glob"));
  dispatch.addServlet("/a/b", named("exact"));
  EXPECT_EQ(whoAnswers(dispatch, "/a/b"), "exact");
  EXPECT_EQ(whoAnswers(dispatch, "/a/c"), "glob");
  EXPECT_EQ(whoAnswers(dispatch, "/a/c/d"), "glob");
  EXPECT_EQ(whoAnswers(dispatch, "/b"), "NotFoundServlet");
  dispatch.setDefault(named("mine"));
  EXPECT_EQ(whoAnswers(dispatch, "/b"), "mine");
  EXPECT_EQ(dispatch.getDefault()->getName(), "mine");
}

TEST(ServletDispatch, GlobsAreAskedInTheOrderOfTheirInsertion) {
  ServletDispatch dispatch;
  dispatch.addGlobServlet("/a*", named("first"));
  dispatch.addGlobServlet("/ab*", named("second"));
  EXPECT_EQ(whoAnswers(dispatch, "/abc"), "first");
  dispatch.addGlobServlet("/a*", named("again"));
  EXPECT_EQ(whoAnswers(dispatch, "/abc"), "second") << "what is added again goes to the end";
  EXPECT_EQ(whoAnswers(dispatch, "/ac"), "again");
}

TEST(ServletDispatch, GlobsAreShellPatterns) {
  ServletDispatch dispatch;
  dispatch.addGlobServlet("/[ab]?", named("set"));
  EXPECT_EQ(whoAnswers(dispatch, "/ax"), "set");
  EXPECT_EQ(whoAnswers(dispatch, "/cx"), "NotFoundServlet");
  EXPECT_EQ(whoAnswers(dispatch, "/axx"), "NotFoundServlet");
}

TEST(ServletDispatch, WhatIsAddedAgainReplacesAndWhatIsRemovedIsGone) {
  ServletDispatch dispatch;
  dispatch.addServlet("/a", named("old"));
  dispatch.addServlet("/a", named("new"));
  EXPECT_EQ(whoAnswers(dispatch, "/a"), "new");
  dispatch.delServlet("/a");
  dispatch.delServlet("/a");
  EXPECT_EQ(whoAnswers(dispatch, "/a"), "NotFoundServlet");
  EXPECT_EQ(dispatch.getServlet("/a"), nullptr);
  dispatch.addGlobServlet("/g*", named("glob"));
  EXPECT_EQ(dispatch.getGlobServlet("/g*")->getName(), "glob");
  dispatch.delGlobServlet("/g*");
  EXPECT_EQ(dispatch.getGlobServlet("/g*"), nullptr);
}

TEST(ServletDispatch, CreatorMakesOneForEachRequest) {
  ServletDispatch dispatch;
  dispatch.addServletCreator<Counted>("/one");
  dispatch.addGlobServletCreator<Counted>("/all/*");
  Counted::s_made = 0;
  EXPECT_NE(dispatch.getMatchedServlet("/one"), dispatch.getMatchedServlet("/one"));
  EXPECT_EQ(whoAnswers(dispatch, "/all/x"), "Counted");
  EXPECT_EQ(Counted::s_made, 3);
}

TEST(ServletDispatch, ListsWhatWasAdded) {
  ServletDispatch dispatch;
  dispatch.addServlet("/a", named("a"));
  dispatch.addServletCreator<Counted>("/b");
  dispatch.addGlobServlet("/c*", named("c"));
  std::map<std::string, IServletCreator::ptr> exact;
  std::map<std::string, IServletCreator::ptr> globs;
  dispatch.listAllServletCreator(exact);
  dispatch.listAllGlobServletCreator(globs);
  ASSERT_EQ(exact.size(), 2u);
  EXPECT_EQ(exact["/a"]->getName(), "a");
  EXPECT_EQ(exact["/b"]->getName(), "Counted");
  ASSERT_EQ(globs.size(), 1u);
  EXPECT_EQ(globs["/c*"]->get()->getName(), "c");
}

// CD-N5: nothing is there that nobody added.
TEST(ServletDispatch, IsEmptyAtFirst) {
  ServletDispatch dispatch;
  std::map<std::string, IServletCreator::ptr> all;
  dispatch.listAllServletCreator(all);
  dispatch.listAllGlobServletCreator(all);
  EXPECT_TRUE(all.empty());
}

// SEC-60
TEST(NotFoundServlet, TellsNothingOfTheServer) {
  NotFoundServlet servlet("sylar/1.0.0");
  const auto response = std::make_shared<HttpResponse>();
  servlet.handle(std::make_shared<HttpRequest>(), response, nullptr);
  EXPECT_EQ(response->getStatus(), HttpStatus::NOT_FOUND);
  EXPECT_EQ(response->getBody(), "404 Not Found\n");
  EXPECT_TRUE(response->headers().empty());
}

using ServletDeathTest = testing::Test;
TEST(ServletDeathTest, NullIsAProgrammersError) {
  ServletDispatch dispatch;
  EXPECT_DEATH(dispatch.addServlet("/a", Servlet::ptr()), "servlet != nullptr");
  EXPECT_DEATH(dispatch.addServlet("/a", FunctionServlet::callback()), "m_cb != nullptr");
}

}  // namespace
}  // namespace sylar::http
